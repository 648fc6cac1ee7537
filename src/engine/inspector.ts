/**
 * Looks at a model file with the addon, in a process of its own since the file is not trusted: options as JSON in the first argument, what
 * was found or why it cannot be loaded as JSON on stdout.
 */
import { loadNative, nativeFailure } from "./NativeModule.ts"

const answer = async (): Promise<object> => {
  try {
    const native = await loadNative()
    return { found: native.inspect(JSON.parse(process.argv[2] ?? "{}")) }
  } catch (thrown) {
    return { failure: nativeFailure(thrown) }
  }
}

process.stdout.write(JSON.stringify(await answer()))
