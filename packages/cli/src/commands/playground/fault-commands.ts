/** `seamark playground stop|start|slow|provider|bad-release|traffic|reset|status`: what a second terminal does to a running one. */
import { Argument, type Command, Option } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addOutputFlag, printTable, printValue } from '../../output-form.ts'
import { askPlayground } from './control/control-client.ts'
import type { ControlRequest, PlaygroundStatus } from './control/request.ts'
import { MEMBERS } from './world/world.ts'

const DEFAULT_RATE = '10'
const MAX_RATE = 1000
/** Longer than any client waits. */
const MAX_DELAY_MS = 600_000

export function addFaultCommands(playground: Command, io: Io): void {
  const add = (text: string, description: string): Command =>
    playground
      .command(text)
      .description(description)
      .option('--data-dir <folder>', 'the playground on this folder; else the newest of this user')
  const ask = async (command: Command, request: ControlRequest): Promise<void> => {
    const { text } = await askPlayground(io, command.optsWithGlobals<{ dataDir?: string }>().dataDir, request)
    io.stdout.write(text)
  }
  const cluster = (): Argument => new Argument('<cluster>').choices([...MEMBERS])
  for (const [verb, description] of [
    ['stop', 'stop a cluster: its API server and its gateway, or one part'],
    ['start', 'start again what was stopped'],
  ] as const)
    add(verb, description)
      .addArgument(cluster())
      .addOption(new Option('--part <part>', 'only this part').choices(['api', 'gateway', 'backends']))
      .action(async (name: string, { part }: { part?: 'api' | 'gateway' | 'backends' }, command: Command) =>
        ask(command, { do: verb, cluster: name, part: part ?? 'cluster' }),
      )
  add('slow', 'let the backends of a cluster answer late; 0 ends it')
    .addArgument(cluster())
    .argument('<milliseconds>')
    .action(async (name: string, text: string, _flags: object, command: Command) =>
      ask(command, { do: 'slow', cluster: name, delayMs: wholeNumber('milliseconds', text, MAX_DELAY_MS) }),
    )
  add('provider', 'let the DNS provider refuse changes, or take them again')
    .addArgument(new Argument('<state>').choices(['down', 'up']))
    .action(async (state: 'down' | 'up', _flags: object, command: Command) => ask(command, { do: 'provider', state }))
  add('bad-release', 'delete 60 % of what declares hosts; the breaker holds it').action(
    async (_flags: object, command: Command) => ask(command, { do: 'bad-release' }),
  )
  add('traffic', 'request a host all the time, from now on')
    .argument('<host>')
    .option('--rate <number>', 'requests a second; 0 ends it', DEFAULT_RATE)
    .action(async (host: string, { rate }: { rate: string }, command: Command) =>
      ask(command, { do: 'traffic', host, perSecond: wholeNumber('--rate', rate, MAX_RATE) }),
    )
  add('reset', 'end every fault, and wait until all is as at first').action(async (_flags: object, command: Command) =>
    ask(command, { do: 'reset' }),
  )
  addOutputFlag(
    add('status', 'addresses and clusters of the running playground'),
    ['text', 'json', 'yaml'],
    'text',
  ).action(async ({ output }: { output: 'text' | 'json' | 'yaml' }, command: Command) => {
    const { dataDir } = command.optsWithGlobals<{ dataDir?: string }>()
    const { text, value } = await askPlayground(io, dataDir, { do: 'status' })
    io.stdout.write(output === 'text' ? print(value as PlaygroundStatus) + text : printValue(output, value))
  })
}

function print({ page, kubeconfig, dns, clusters }: PlaygroundStatus): string {
  const rows = clusters.map(({ name, state, gateway, api }) => [name, state, gateway, api])
  return `page        ${page}\nDNS server  ${dns}\nkubeconfig  ${kubeconfig}\n\n${printTable(['CLUSTER', 'STATE', 'GATEWAY', 'API SERVER'], rows)}`
}

function wholeNumber(what: string, text: string, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (Number.isNaN(value) || value > most)
    throw new CommandError(`${what} '${text}' is not a whole number from 0 to ${most}`, EXIT.usage)
  return value
}
