/** Headers of an answer that a page may read beside the plain ones. */
const exposed = "x-request-id, retry-after, retry-after-ms, x-mashbox-ignored, x-should-retry"

/** What an answer to a page of an allowed origin says, so that its browser hands it over. */
export const corsHeaders = (origin: string) => ({
  "access-control-allow-origin": origin,
  "access-control-expose-headers": exposed,
  vary: "Origin"
})

/** The answer to a browser's question whether a page may send a request (the Fetch standard's preflight). */
export const preflightHeaders = (
  origin: string,
  methods: ReadonlyArray<string>,
  asked: { readonly headers: string | undefined; readonly privateNetwork: string | undefined }
): Record<string, string> => ({
  "access-control-allow-origin": origin,
  "access-control-allow-methods": methods.join(", "),
  // The page's origin is trusted with every header; client libraries send many of their own.
  ...(asked.headers !== undefined && /^[\w!#$%&'*+.^`|~, -]{1,2000}$/.test(asked.headers)
    ? { "access-control-allow-headers": asked.headers }
    : {}),
  ...(asked.privateNetwork === "true" ? { "access-control-allow-private-network": "true" } : {}),
  "access-control-max-age": "600",
  vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
})
