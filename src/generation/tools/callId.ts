import { randomUUID } from "node:crypto"

/** "call_" and 32 hexadecimal digits, as unique as a UUID. */
export const callId = (): string => `call_${randomUUID().replaceAll("-", "")}`
