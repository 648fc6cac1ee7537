/** Linux counts a thread's work in steps of up to this many microseconds. */
export const cpuTimeStep = 4000

/** Microseconds that this thread has worked: what other programs do meanwhile does not count. For sums of many steps. */
export const cpuTime = (): number => {
  const { system, user } = process.threadCpuUsage()
  return user + system
}
