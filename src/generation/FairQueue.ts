/** One level of the queue: those who share it take turns, and each of them is such a level again or a line of items. */
class Line<A> {
  running = 0
  waiting = 0
  items: Array<A> = []
  /** In the order of their turns. */
  members = new Map<string, Line<A>>()

  /** The next member: of those that wait, the one with the fewest running; among equals, whose turn is first. */
  next(): [string, Line<A>] | undefined {
    let best: [string, Line<A>] | undefined
    for (const entry of this.members) {
      if (entry[1].waiting > 0 && (best === undefined || entry[1].running < best[1].running)) best = entry
    }
    return best
  }

  copy(): Line<A> {
    const copy = new Line<A>()
    copy.running = this.running
    copy.waiting = this.waiting
    copy.items = [...this.items]
    for (const [name, member] of this.members) copy.members.set(name, member.copy())
    return copy
  }
}

/** Who an item belongs to, from the widest to the narrowest, for example tenant and session. */
export type Owner = readonly [string, ...Array<string>]

/**
 * A queue that is fair at every level of ownership: an item is taken from the owner with the fewest running items, owners with equally many take
 * turns, and the items of one owner keep their order.
 */
export class FairQueue<A> {
  private readonly root: Line<A>

  constructor(root = new Line<A>()) {
    this.root = root
  }

  get waiting(): number {
    return this.root.waiting
  }

  get running(): number {
    return this.root.running
  }

  /** Items of a widest owner that wait. */
  waitingOf(name: string): number {
    return this.root.members.get(name)?.waiting ?? 0
  }

  push(owner: Owner, item: A): void {
    let line = this.root
    line.waiting++
    for (const name of owner) {
      const member = line.members.get(name) ?? new Line<A>()
      if (member.waiting === 0) moveToEnd(line.members, name, member)
      member.waiting++
      line = member
    }
    line.items.push(item)
  }

  /** Takes the next item, which runs until `ended`. */
  take(): A | undefined {
    if (this.root.waiting === 0) return undefined
    let line = this.root
    while (true) {
      line.running++
      line.waiting--
      const next = line.next()
      if (next === undefined) return line.items.shift()
      moveToEnd(line.members, ...next)
      line = next[1]
    }
  }

  /** An item of `owner` that was taken runs no more. */
  ended(owner: Owner): void {
    this.change(owner, (line) => line.running--)
  }

  /** Forgets an item that waits. */
  remove(owner: Owner, item: A): void {
    const line = this.change(owner, (line) => line.waiting--)
    line?.items.splice(line.items.indexOf(item), 1)
  }

  copy(): FairQueue<A> {
    return new FairQueue(this.root.copy())
  }

  private change(owner: Owner, update: (line: Line<A>) => void): Line<A> | undefined {
    let line = this.root
    update(line)
    for (const name of owner) {
      const member = line.members.get(name)
      if (member === undefined) return undefined
      update(member)
      if (member.waiting === 0 && member.running === 0) line.members.delete(name)
      line = member
    }
    return line
  }
}

const moveToEnd = <A>(members: Map<string, A>, name: string, member: A): void => {
  members.delete(name)
  members.set(name, member)
}
