/**
 * Work that offers a pause at every `yield`, about a millisecond of work apart: with nothing, or "waiting" where other paused work has to go
 * on first.
 */
export type Paused<A> = Generator<"waiting" | undefined, A, void>

/** Does all of the work at once. */
export const finish = <A>(work: Paused<A>): A => {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    if (step.value === "waiting") throw new Error("this work has to wait for other work")
  }
}

/** Works for about this many milliseconds; undefined where there is more to do. */
export const workFor = <A>(work: Paused<A>, milliseconds: number): { readonly value: A } | undefined => {
  const end = performance.now() + milliseconds
  do {
    const step = work.next()
    if (step.done === true) return { value: step.value }
    if (step.value === "waiting") return undefined
  } while (performance.now() < end)
  return undefined
}

/** Ends work that nobody waits for any more. */
export const abandon = (work: Paused<unknown>): void => {
  work.return(undefined)
}
