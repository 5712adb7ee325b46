/**
 * Parts of the command line for tests that run a verb in their own process. Not a public surface.
 */
export { describeFault } from '../src/fault.ts'
export { EXAMPLES } from '../src/verb-examples.ts'
export { runSeamark } from '../src/main.ts'
export { CommandError, type ExitCode, type Io } from '../src/command.ts'
export { build as buildDig } from '../src/commands/dig/dig.ts'
export { findVerb, VERBS } from '../src/verbs.ts'
export { parseScenario, readScenario } from '../src/commands/playground/script/scenario-file.ts'
export { playFleet } from '../src/commands/playground/script/scenario.ts'
export { FleetEnvironment } from '../src/commands/playground/script/fleet-environment.ts'
