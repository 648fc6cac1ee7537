const loopback = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i

/** Whether a host name or address is this machine's own, out of reach for others. */
export const isLoopback = (host: string): boolean => loopback.test(host)
