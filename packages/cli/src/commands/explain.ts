/** `seamark explain HOST`: from the source to the answer, hop by hop, and the first one that is broken. Read-only. */
import { isIP } from 'node:net'
import { createDnsClient, groupRecords } from '@seamark/dns'
import { messageOf } from '@seamark/kube'
import { type AnswerFact, explain, type Explanation, gatherFacts, publishOptions, REASONS } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../command.ts'
import { addKubeFlags, type KubeFlags, openCluster } from '../kube-flags.ts'
import { addSettingFlags, readConfig } from './config-view.ts'

interface Flags extends KubeFlags {
  config?: string
  server?: string
  output?: string
}

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('why a host answers as it does, hop by hop'))
    .argument('<host>')
    .option('--config <file>', 'ManagerConfiguration file of the manager [SEAMARK_CONFIG]')
    .option('--server <address[:port]>', 'DNS server to ask')
    .option('-o, --output <text|json>', 'form of the output', 'text')
  addSettingFlags(command)
  return command.action(async (host: string, flags: Flags & Record<string, unknown>) => {
    const { config } = await readConfig(io, flags)
    const cluster = await openCluster(io, flags)
    const { server } = flags
    try {
      const answer =
        server === undefined ? undefined : async (name: string, signal: AbortSignal) => ask(server, name, signal)
      const facts = await gatherFacts(
        host,
        { cluster, options: publishOptions(config.publish), ...(answer !== undefined && { answer }) },
        io.signal,
      )
      const explanation = explain(facts)
      io.stdout.write(flags.output === 'json' ? `${JSON.stringify(explanation, undefined, 2)}\n` : print(explanation))
      io.exit(explanation.firstBroken === undefined ? EXIT.ok : EXIT.changes)
    } finally {
      await cluster.close()
    }
  })
}

async function ask(server: string, name: string, signal: AbortSignal): Promise<AnswerFact> {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<v4>[^:]+))(?::(?<port>\d+))?$/.exec(server)
  const host = match?.groups?.['v6'] ?? match?.groups?.['v4'] ?? server
  if (isIP(host) === 0) throw new CommandError(`--server ${server} is no address`, EXIT.usage)
  const at = { address: host, port: Number(match?.groups?.['port'] ?? 53) }
  const client = createDnsClient()
  try {
    const replies = await Promise.all(
      ['A', 'AAAA'].map(async (type) => client.query({ server: at, name, type, signal })),
    )
    const sets = replies.flatMap((reply) => groupRecords(reply.message.answers))
    const targets = sets
      .filter((set) => ['A', 'AAAA', 'CNAME'].includes(set.type))
      .flatMap((set) => set.values.map((value) => value.replace(/\.$/, '')))
    return { server, targets: [...new Set(targets)] }
  } catch (error) {
    return { server, targets: [], fault: messageOf(error) }
  } finally {
    await client.close()
  }
}

const SIGNS = { ok: '✔', broken: '✗', skipped: '–' } as const

function print({ host, hops, firstBroken }: Explanation): string {
  const lines = hops.map(
    (hop, index) =>
      `${String(index + 1).padStart(2)} ${hop.name.padEnd(12)} ${SIGNS[hop.state]} ${hop.reason === undefined ? '' : `${hop.reason}: `}${hop.text}\n`,
  )
  const verdict =
    firstBroken === undefined
      ? `${host} is as it should be\n`
      : `${host} is broken at ${firstBroken.name}: ${firstBroken.reason === undefined ? firstBroken.text : REASONS[firstBroken.reason]}\n`
  return verdict + lines.join('')
}
