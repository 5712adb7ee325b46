#!/usr/bin/env node
/** Process entry: everything testable is in main.ts. */
import { main } from './main.ts'

process.exitCode = await main(process.argv.slice(2))
// A handle that is still open must not keep the process of a finished command running.
const exit = () => void setImmediate(() => process.exit())
// Flush before exiting: process.exit() would cut what a pipe (64 KiB) has not taken yet.
if (process.stdout.writable && process.stdout.writableLength > 0) process.stdout.write('', exit)
else exit()
