/**
 * `seamark playground` (`npm start`): clusters, zones and the manager on this machine, in parts, then the changes that the
 * reader makes, live. Nothing leaves the machine; Ctrl-C removes everything. `--script FILE` plays a scenario of a fleet
 * instead, and fails when one of its expectations is not met.
 */
import { messageOf } from '@seamark/kube'
import { Command } from 'commander'
import { CommandError, EXIT, type Io, untilInterrupted } from '../../command.ts'
import {
  follow,
  type Printer,
  NoAnswer,
  publishHost,
  simulateFailures,
  printCommands,
  findExample,
} from './demonstration.ts'
import { openEnvironment, ZONE } from './environment.ts'
import { showFailover } from './failover.ts'
import { readScenario } from './scenario-file.ts'
import { playFleet } from './scenario.ts'

const FLEET_SCENARIO = 'fleet/scenarios/outage-and-drain.yaml'

interface Flags {
  once?: boolean
  script?: string
}

export function build(io: Io): Command {
  return new Command()
    .description('a cluster, a DNS zone and the manager on this machine, with only Node')
    .option('--once', 'run all parts and exit: 0, or 4 when no answer came in time')
    .option('--script <file>', 'play a scenario of a fleet and exit: 0, or 4 when an expectation is not met in time')
    .action(async ({ once, script }: Flags) => {
      const printer = createPrinter(io)
      await (script === undefined ? play(io, printer, once === true) : playScript(io, printer, script))
    })
}

function createPrinter(io: Io): Printer {
  const started = Date.now()
  return {
    heading: (text) => void io.stdout.write(`\n${text}\n`),
    line: (text) => void io.stdout.write(`${((Date.now() - started) / 1_000).toFixed(1).padStart(6)} s  ${text}\n`),
  }
}

async function playScript(io: Io, printer: Printer, path: string): Promise<void> {
  const scenario = await readScenario(path)
  io.stdout.write(`${scenario.title}\n`)
  await playFleet(scenario, printer, untilInterrupted(io))
}

async function play(io: Io, printer: Printer, isOnce: boolean): Promise<void> {
  io.stdout.write('Seamark playground: nothing leaves this machine, Ctrl-C removes everything\n')
  const stopped = new AbortController()
  let failure: unknown
  const environment = await openEnvironment((error) => {
    failure = error
    stopped.abort()
  })
  try {
    printer.line(`Kubernetes API server  ${environment.apiUrl}`)
    printer.line(`DNS server             127.0.0.1:${environment.dnsAddress.port}, zone ${ZONE}`)
    await publishHost(environment, printer)
    await simulateFailures(environment, printer)
    await showFailover(environment, printer, io)
    printer.heading('Part 4: a hub, three clusters with a gateway each, and one host on all of them')
    await playFleet(await readScenario(findExample(FLEET_SCENARIO)), printer, untilInterrupted(io))
    printCommands(environment, printer)
    if (!isOnce) {
      printer.heading('Following every change; Ctrl-C ends it')
      await follow(environment, printer, AbortSignal.any([untilInterrupted(io), stopped.signal]))
    }
  } catch (error) {
    if (error instanceof NoAnswer) throw new CommandError(error.message, EXIT.timeout, { cause: error })
    throw error
  } finally {
    await environment.stop()
  }
  if (failure !== undefined) throw new CommandError(`the manager ended: ${messageOf(failure)}`)
}
