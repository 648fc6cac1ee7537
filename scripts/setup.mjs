#!/usr/bin/env node
import { reportSetupErrors, setup } from "./setup/main.mjs"

// `--no-install`: the packages are there already, put by something that `npm ci` must not replace (the Nix build).
await reportSetupErrors(() => setup({ install: !process.argv.includes("--no-install") }))
