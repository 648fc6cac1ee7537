import { Effect } from "effect"
import { abandon, type Paused, workFor } from "./Paused.ts"

/** Milliseconds that a turn may keep the event loop. */
const turnMs = 3

/** Lets everything else that the event loop has to do go first. */
export const nextTurn: Effect.Effect<void> = Effect.callback((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

/** Does paused work between other events: at once where it is short. Interrupting the effect ends the work. */
export const inTurns = <A>(begin: () => Paused<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const work = begin()
    const done = workFor(work, turnMs)
    if (done !== undefined) return Effect.succeed(done.value)
    return Effect.callback((resume) => {
      const turn = () => {
        try {
          const end = workFor(work, turnMs)
          if (end === undefined) next = setImmediate(turn)
          else resume(Effect.succeed(end.value))
        } catch (defect) {
          resume(Effect.die(defect))
        }
      }
      let next = setImmediate(turn)
      return Effect.sync(() => {
        clearImmediate(next)
        abandon(work)
      })
    })
  })
