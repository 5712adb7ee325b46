/** One source file with everything it needs as one file that Node runs: tests start many processes of it, quickly. */
import { build } from 'esbuild'

export async function bundleProgram(entry: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source', 'node'],
    // CommonJS dependencies call require() for Node's own modules.
    banner: {
      js: "import { createRequire as nodeRequire } from 'node:module'; const require = nodeRequire(import.meta.url);",
    },
    logLevel: 'error',
  })
}
