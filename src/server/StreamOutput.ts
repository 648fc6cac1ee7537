/** Where the frames of one streamed answer go. */
export interface StreamOutput {
  readonly write: (frames: string) => void
  /** Nothing more comes. */
  readonly end: () => void
  /** Leaves the answer unfinished. */
  readonly cut: (reason?: Error) => void
  /** Whether nothing that is written arrives any more. */
  readonly closed: boolean
  /** Milliseconds that the client has left output unread. */
  readonly unreadMs: () => number
}

/** Notices a client that takes nothing of what waits for it. */
export class ReaderWatch {
  private readonly waiting: () => number
  private readonly now: () => number
  private unreadBytes = 0
  private blockedSince: number | undefined

  /** `waiting`: bytes that the client has not taken yet. */
  constructor(waiting: () => number, now: () => number) {
    this.waiting = waiting
    this.now = now
  }

  /** Writes, and counts what comes to wait by it as no sign of the reader. */
  around(write: () => void): void {
    this.look()
    write()
    this.unreadBytes = this.waiting()
  }

  unreadMs(): number {
    this.look()
    return this.blockedSince === undefined ? 0 : this.now() - this.blockedSince
  }

  private look(): void {
    const waiting = this.waiting()
    if (waiting === 0) this.blockedSince = undefined
    else if (waiting < this.unreadBytes || this.blockedSince === undefined) this.blockedSince = this.now()
    this.unreadBytes = waiting
  }
}
