#!/usr/bin/env node
/** Process entry: everything testable is in main.ts. */
import { main } from './main.ts'

// Flush before exiting: process.exit() would cut a pipe that is not drained.
process.exitCode = await main(process.argv.slice(2))
// A command that returned must not be kept alive by a forgotten handle.
setImmediate(() => process.exit())
