/** The longest turn of an event loop, in milliseconds. */
export interface LongestTurn {
  /** By the clock: what waits for the loop waits this long, whatever else the machine does meanwhile. */
  readonly wallMs: number
  /** Of the thread's CPU time: what the program itself does, also where other processes take the core. Some kernels count it in ticks of 4 ms. */
  readonly cpuMs: number
}

const cpuNow = () => {
  const { system, user } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Watches this thread's event loop, keeping it turning and so a core busy, until the result is called. */
export const watchTurns = (): () => LongestTurn => {
  let wallMs = 0
  let cpuMs = 0
  let wallBefore = performance.now()
  let cpuBefore = cpuNow()
  const turn = () => {
    const wall = performance.now()
    const cpu = cpuNow()
    wallMs = Math.max(wallMs, wall - wallBefore)
    cpuMs = Math.max(cpuMs, cpu - cpuBefore)
    wallBefore = wall
    cpuBefore = cpu
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  return () => {
    clearImmediate(next)
    return { wallMs, cpuMs }
  }
}
