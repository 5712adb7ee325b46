/**
 * `seamark playground` (`npm start`): a cluster, a zone and the manager on this machine, three acts, then whatever the reader
 * changes, live. Nothing leaves the machine; Ctrl-C removes everything.
 */
import { messageOf } from '@seamark/kube'
import { Command } from 'commander'
import { CommandError, EXIT, type Io, untilInterrupted } from '../command.ts'
import { follow, type Narrator, NoAnswer, playFirstAct, playSecondAct, describeThirdAct } from '../playground/acts.ts'
import { openStage, ZONE } from '../playground/stage.ts'

interface Flags {
  once?: boolean
}

export function build(io: Io): Command {
  return new Command()
    .description('a cluster, a DNS zone and the manager on this machine, with only Node')
    .option('--once', 'play the three acts and exit: 0, or 4 when no answer came within 30 s')
    .action(async (flags: Flags) => play(io, flags.once === true))
}

async function play(io: Io, isOnce: boolean): Promise<void> {
  const started = Date.now()
  const narrator: Narrator = {
    heading: (text) => void io.stdout.write(`\n${text}\n`),
    say: (text) => void io.stdout.write(`${((Date.now() - started) / 1_000).toFixed(1).padStart(6)} s  ${text}\n`),
  }
  io.stdout.write('Seamark playground: nothing leaves this machine, Ctrl-C removes everything\n')
  const stopped = new AbortController()
  let failure: unknown
  const stage = await openStage((error) => {
    failure = error
    stopped.abort()
  })
  try {
    narrator.say(`Kubernetes API server  ${stage.apiUrl}`)
    narrator.say(`DNS server             127.0.0.1:${stage.dnsAddress.port}, zone ${ZONE}`)
    await playFirstAct(stage, narrator)
    await playSecondAct(stage, narrator)
    describeThirdAct(stage, narrator)
    if (!isOnce) {
      narrator.heading('Following every change; Ctrl-C ends it')
      await follow(stage, narrator, AbortSignal.any([untilInterrupted(io), stopped.signal]))
    }
  } catch (error) {
    if (error instanceof NoAnswer) throw new CommandError(error.message, EXIT.timeout, { cause: error })
    throw error
  } finally {
    await stage.stop()
  }
  if (failure !== undefined) throw new CommandError(`the manager ended: ${messageOf(failure)}`)
}
