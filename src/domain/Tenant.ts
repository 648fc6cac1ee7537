import { Context } from "effect"

/** Whose request is being answered; what one tenant sent is never used for another. The guards set it. */
export const CurrentTenant = Context.Reference<string>("mashbox/domain/CurrentTenant", { defaultValue: () => "local" })
