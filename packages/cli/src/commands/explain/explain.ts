/**
 * `seamark explain HOST`: from the source to the answer, hop by hop, and the first one that is broken. Read-only. With a URL
 * the last hop is the route: which rule of which object takes the request in the gateway.
 */
import { type Explanation, REASONS, traceHost } from '@seamark/operator'
import { Command } from 'commander'
import { EXIT, type Io } from '../../command.ts'
import { addKubeFlags, DEFAULT_NAMESPACE, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'
import { addOutputFlag, printValue } from '../../output-form.ts'
import { explainHost, parseDnsServer, readHost } from './host-explanation.ts'
import { parseQuestion, printTrace, requestRules, traceInCluster } from './request-hop.ts'
import { addSettingFlags, configPath, readConfig } from '../../flags/setting-flags.ts'

interface Flags extends KubeFlags {
  config?: string
  namespace?: string
  server?: string
  output: 'text' | 'wide' | 'json' | 'yaml'
  header: string[]
  request: string
}

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('why a host answers as it does, hop by hop'))
    .argument('<host or URL>', 'HOST, or https://HOST/PATH for a request')
    .option('-H, --header <name: value>', 'header field of the request; may be repeated', collect, [])
    .option('-X, --request <method>', 'method of the request', 'GET')
    .option('--config <file>', 'ManagerConfiguration file of the manager [SEAMARK_CONFIG]')
    .option('--server <address[:port]>', 'DNS server to ask; else those of the zone')
    .option(
      '-n, --namespace <name>',
      `namespace of the manager, where its switches and guard state are; else that of the configuration, else ${DEFAULT_NAMESPACE}`,
    )
  addOutputFlag(command, ['text', 'wide', 'json', 'yaml'], 'text')
  addSettingFlags(command, { isListed: false })
  return command.action(async (argument: string, flags: Flags & Record<string, unknown>) => {
    const question = parseQuestion(argument, flags.request.toUpperCase(), flags.header)
    const host = question === undefined ? readHost(argument) : hostOf(question)
    if (flags.server !== undefined) parseDnsServer(flags.server)
    const { config } = await readConfig(io, flags)
    const cluster = await openCluster(io, flags)
    try {
      const trace = await traceHost(cluster.client, host, io.signal).catch(() => undefined)
      const request =
        question === undefined
          ? undefined
          : await traceInCluster(cluster.client, question, requestRules(config), io.signal)
      const { explanation } = await explainHost(io, {
        host,
        cluster,
        config,
        isConfigured: configPath(io, flags) !== undefined,
        server: flags.server,
        trace,
        ...(request !== undefined && { route: { isServed: request.isServed, text: request.text } }),
      })
      const { output } = flags
      io.stdout.write(
        output === 'json' || output === 'yaml'
          ? printValue(output, { ...explanation, ...(request !== undefined && { request }) })
          : print(explanation, output === 'wide') +
              (request === undefined ? '' : printTrace(request, output === 'wide')),
      )
      io.exit(explanation.verdict.state === 'as it should be' ? EXIT.ok : EXIT.changes)
    } finally {
      await cluster.close()
    }
  })
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value]
}

function hostOf({ authority }: { readonly authority: string }): string {
  return authority.replace(/:\d+$/, '')
}

const SIGNS = { ok: '✔', degraded: '!', broken: '✗', skipped: '–' } as const

/** `isWide` adds what each reason code means. */
function print({ hops, verdict }: Explanation, isWide: boolean): string {
  const lines = hops.map((hop, index) => {
    const reason = hop.reason === undefined ? '' : `${hop.reason}: `
    const meaning = isWide && hop.reason !== undefined ? `${' '.repeat(18)}${REASONS[hop.reason]}\n` : ''
    return `${String(index + 1).padStart(2)} ${hop.name.padEnd(12)} ${SIGNS[hop.state]} ${reason}${hop.text}\n${meaning}`
  })
  return `${verdict.text}\n${lines.join('')}`
}
