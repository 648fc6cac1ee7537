import { writeFileSync } from "node:fs"
import { openApi } from "../schema/Api.ts"

writeFileSync(new URL("../schema/openapi.json", import.meta.url), JSON.stringify(openApi(), undefined, 2) + "\n")
