import { defineConfig } from "rolldown"
import packageJson from "./package.json" with { type: "json" }

const output = { dir: "dist", format: "esm", chunkFileNames: "chunks/[name]-[hash].js" } as const

// Programs ship with everything inside: resolving a few hundred modules makes start-up several times slower. Only the optional telemetry
// exporters stay outside, since they are imported only where an endpoint is configured.
const programs = defineConfig({
  input: {
    cli: "src/cli.ts",
    worker: "src/engine/worker.ts",
    inspector: "src/engine/inspector.ts",
    prompts: "src/prompt/promptThreadEntry.ts",
    grammars: "src/grammar/grammarThreadEntry.ts"
  },
  platform: "node",
  external: [/^@opentelemetry\//, /^@effect\/opentelemetry/],
  output: { ...output, cleanDir: true, minify: { compress: true, mangle: false, codegen: { removeWhitespace: false } } }
})

// The library shares `effect` with the program that imports it.
const library = defineConfig({
  input: { index: "src/index.ts" },
  platform: "node",
  external: Object.keys(packageJson.dependencies).map((name) => new RegExp(`^${name}(/|$)`)),
  output: { ...output, chunkFileNames: "chunks/library-[name]-[hash].js" }
})

export default [programs, library]
