import { defineConfig } from "vitest/config"

export default defineConfig({
  // Only what hangs runs into these: a machine that is busy is ten times as slow.
  test: { include: ["test/**/*.test.ts"], testTimeout: 240_000, hookTimeout: 240_000 }
})
