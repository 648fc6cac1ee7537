const width = 24

/**
 * A line on stderr that shows how far a step is: redrawn on a terminal, printed once at start and end elsewhere.
 * @param {string} title
 */
export const progressLine = (title) => {
  const started = Date.now()
  const live = process.stderr.isTTY === true
  let fraction
  const draw = () => {
    const seconds = `${Math.round((Date.now() - started) / 1000)} s`
    const bar = fraction === undefined
      ? ""
      : `[${"█".repeat(Math.round(fraction * width)).padEnd(width, "·")}] ${String(Math.round(fraction * 100)).padStart(3)} % `
    process.stderr.write(`\r\x1b[K${title} ${bar}${seconds}`)
  }
  const timer = live ? setInterval(draw, 200) : undefined
  if (live) draw()
  else process.stderr.write(`${title} …\n`)
  const finish = (/** @type {string} */ word) => {
    clearInterval(timer)
    process.stderr.write(`${live ? "\r\x1b[K" : ""}${title} ${word} in ${((Date.now() - started) / 1000).toFixed(1)} s\n`)
  }
  return {
    /** @param {number} value between 0 and 1 */
    update: (value) => {
      fraction = value
    },
    done: () => finish("done"),
    failed: () => finish("failed")
  }
}
