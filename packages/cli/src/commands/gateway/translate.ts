/** `seamark gateway translate -f FILE`: the configuration that objects of a file give, offline, with statuses and findings. */
import { build, printResources, type Build } from '@seamark/gateway'
import { keyOf, type Immutable, type Key, type Kind, type Obj } from '@seamark/kube/object'
import { Command, Option } from 'commander'
import { EXIT, type Io } from '../../command.ts'
import {
  addBuildFlags,
  addPortFlags,
  type BuildFlags,
  buildSettings,
  parseListen,
  type PortFlags,
  portOptions,
} from './gateway-flags.ts'
import { readManifests } from '../../manifest-files.ts'
import { addOutputFlag, printValue } from '../../output-form.ts'

interface Flags extends BuildFlags, PortFlags {
  filename: string[]
  output: 'json' | 'yaml'
  to: 'ir' | 'envoy'
  httpListen: string
  httpsListen: string
}

export function buildTranslate(io: Io): Command {
  const command = new Command('translate')
    .description('print what the gateway makes of manifests: hosts and routes, statuses, findings')
    .requiredOption('-f, --filename <files...>', 'files with manifests; - is stdin')
    .addOption(
      new Option('--to <form>', 'ir: hosts and routes as the built-in proxy reads them; envoy: resources of Envoy')
        .choices(['ir', 'envoy'])
        .default('ir'),
    )
    .option('--http-listen <host:port>', 'address of the main HTTP listener', ':8080')
    .option('--https-listen <host:port>', 'address of the main HTTPS listener', ':8443')
  addOutputFlag(command, ['yaml', 'json'], 'yaml')
  addPortFlags(command)
  addBuildFlags(command)
  return command.action(async (flags: Flags) => {
    const listen = {
      http: parseListen('--http-listen', flags.httpListen),
      https: parseListen('--https-listen', flags.httpsListen),
      ...portOptions(flags),
    }
    const settings = { ...buildSettings(flags), listen }
    const objects = await readManifests(flags.filename)
    const { ir, statuses, findings } = build(viewOf(objects), settings)
    const configuration =
      flags.to === 'ir'
        ? // Private keys are not for terminals and pull requests.
          { ...ir, certificates: ir.certificates.map(({ name }) => ({ name })) }
        : printResources(ir, listen)
    io.stdout.write(printValue(flags.output, { ...configuration, statuses, findings }))
    io.exit(hasFaults(statuses) || findings.length > 0 ? EXIT.changes : EXIT.ok)
  })
}

/** Objects without a namespace are in `default`, as with kubectl; Secrets may have stringData. */
function viewOf(objects: readonly Obj[]) {
  const find = <T extends Obj>(kind: Kind<T>): Obj[] =>
    objects
      .filter((each) => each.kind === kind.kind && (each.apiVersion ?? '').startsWith(kind.group))
      .map((each) => complete(kind, each))
  return {
    get: <T extends Obj>(kind: Kind<T>, key: Key) =>
      find(kind).find((each) => keyOf(each) === key) as Immutable<T> | undefined,
    list: <T extends Obj>(kind: Kind<T>) => find(kind) as unknown as Immutable<T>[],
  }
}

function complete(
  kind: Kind,
  object: Obj & { stringData?: Record<string, string>; data?: Record<string, string> },
): Obj {
  const metadata = kind.namespaced ? { namespace: 'default', ...object.metadata } : object.metadata
  const plain = Object.entries(object.stringData ?? {})
  const data = plain.map(([key, value]) => [key, Buffer.from(value).toString('base64')])
  return { ...object, metadata, ...(plain.length > 0 && { data: { ...object.data, ...Object.fromEntries(data) } }) }
}

function hasFaults(statuses: Build['statuses']): boolean {
  // A listener that is not in conflict has the condition Conflicted with status False.
  const text = JSON.stringify(statuses.map(({ status }) => status))
  return text.replaceAll('"type":"Conflicted","status":"False"', '').includes('"status":"False"')
}
