import { flushCompileCache } from "node:module"
import { setFlagsFromString } from "node:v8"

/**
 * Leaves the middle one of V8's compilers out of this process: on Node 24 its threads may end the process with SIGSEGV while all cores are busy
 * (nodejs/node#64841), as they are while a model runs. What is hot is TurboFan's all the same.
 *
 * To be called when the modules are there: V8 takes compiled code, Node's own and that of the compile cache, only under the flags that it was
 * made with.
 */
export const disableMaglev = (): void => {
  flushCompileCache()
  setFlagsFromString("--no-maglev")
}
