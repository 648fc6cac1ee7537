import { defineConfig } from "rolldown"

// Bundled start-up is several times faster than resolving a few hundred modules. The optional telemetry exporters stay outside: they are
// imported only where an endpoint is configured.
export default defineConfig({
  input: { cli: "src/cli.ts", worker: "src/engine/worker.ts", encoder: "src/tokenizer/encoderThread.ts", index: "src/index.ts" },
  platform: "node",
  external: [/^@opentelemetry\//, /^@effect\/opentelemetry/],
  output: { dir: "dist", format: "esm", chunkFileNames: "chunks/[name]-[hash].js", cleanDir: true, minify: { compress: true, mangle: false, codegen: { removeWhitespace: false } } },
  treeshake: true
})
