/** Microseconds that this thread has worked: what other programs do meanwhile does not count. */
export const cpuTime = (): number => {
  const { system, user } = process.threadCpuUsage()
  return user + system
}
