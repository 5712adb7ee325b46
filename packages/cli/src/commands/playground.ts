/**
 * `seamark playground` (`npm start`): a cluster, a zone and the manager on this machine, four parts, then the
 * changes that the reader makes, live. Nothing leaves the machine; Ctrl-C removes everything.
 */
import { messageOf } from '@seamark/kube'
import { Command } from 'commander'
import { CommandError, EXIT, type Io, untilInterrupted } from '../command.ts'
import {
  follow,
  type Printer,
  NoAnswer,
  publishHost,
  simulateFailures,
  printCommands,
} from '../playground/demonstration.ts'
import { openEnvironment, ZONE } from '../playground/environment.ts'
import { showFailover } from '../playground/failover.ts'

interface Flags {
  once?: boolean
}

export function build(io: Io): Command {
  return new Command()
    .description('a cluster, a DNS zone and the manager on this machine, with only Node')
    .option('--once', 'run the four parts and exit: 0, or 4 when no answer came within 30 s')
    .action(async (flags: Flags) => play(io, flags.once === true))
}

async function play(io: Io, isOnce: boolean): Promise<void> {
  const started = Date.now()
  const printer: Printer = {
    heading: (text) => void io.stdout.write(`\n${text}\n`),
    line: (text) => void io.stdout.write(`${((Date.now() - started) / 1_000).toFixed(1).padStart(6)} s  ${text}\n`),
  }
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
