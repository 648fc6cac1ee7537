/** A step of the set-up that cannot go on; `detail` is what the failing program printed. */
export class SetupError extends Error {
  /**
   * @param {string} message
   * @param {string} [detail]
   */
  constructor(message, detail = "") {
    super(message)
    this.name = "SetupError"
    this.detail = detail
  }
}
