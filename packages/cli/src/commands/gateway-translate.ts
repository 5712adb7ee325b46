/** `seamark gateway translate -f FILE`: the configuration that objects of a file give, offline, with statuses and findings. */
import { build, type Build } from '@seamark/gateway'
import { keyOf, type Immutable, type Key, type Kind, type Obj } from '@seamark/kube/object'
import { Command } from 'commander'
import { EXIT, type Io } from '../command.ts'
import { addBuildFlags, type BuildFlags, buildSettings } from '../gateway-flags.ts'
import { readManifests } from '../manifest-files.ts'
import { addOutputFlag, printValue } from '../output-form.ts'

interface Flags extends BuildFlags {
  filename: string[]
  output: 'json' | 'yaml'
}

export function buildTranslate(io: Io): Command {
  const command = new Command('translate')
    .description('print what the gateway makes of manifests: hosts and routes, statuses, findings')
    .requiredOption('-f, --filename <files...>', 'files with manifests; - is stdin')
  addOutputFlag(command, ['yaml', 'json'], 'yaml')
  addBuildFlags(command)
  return command.action(async (flags: Flags) => {
    const settings = buildSettings(flags)
    const objects = await readManifests(flags.filename)
    const { ir, statuses, findings } = build(viewOf(objects), settings)
    // Private keys are not for terminals and pull requests.
    const certificates = ir.certificates.map(({ name }) => ({ name }))
    io.stdout.write(printValue(flags.output, { ...ir, certificates, statuses, findings }))
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
