import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // What scripts/test.mjs starts Vitest with is for its workers too.
    execArgv: process.execArgv,
    // Vitest would leave one core idle, which on two is half of them.
    maxWorkers: "100%",
    // Only what hangs runs into these: a machine that is busy is ten times as slow.
    testTimeout: 240_000,
    hookTimeout: 240_000
  }
})
