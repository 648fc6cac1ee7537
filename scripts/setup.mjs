#!/usr/bin/env node
import { reportSetupErrors, setup } from "./setup/main.mjs"

await reportSetupErrors(setup)
