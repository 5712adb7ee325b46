/** `seamark convert -f FILE`: IngressRoute v1beta1 to HTTPProxy v1 and back; other objects pass unchanged. */
import { toHttpProxies, toIngressRoutes } from '@seamark/gateway'
import { HTTPProxy, IngressRoute } from '@seamark/kube/contour'
import { apiVersionOf, type Kind, type Obj } from '@seamark/kube/object'
import { Command } from 'commander'
import { stringify } from 'yaml'
import { EXIT, type Io } from '../../command.ts'
import { readManifests } from '../../manifest-files.ts'

interface Flags {
  filename: string[]
  to: 'HTTPProxy' | 'IngressRoute'
}

export function build(io: Io): Command {
  const command = new Command()
    .description(
      'convert IngressRoutes to HTTPProxies, or back; what the other kind cannot express is reported on stderr',
    )
    .requiredOption(
      '-f, --filename <files...>',
      'files with manifests, all objects of a delegation together; - is stdin',
    )
  command.addOption(
    command
      .createOption('--to <kind>', 'kind to convert to')
      .choices(['HTTPProxy', 'IngressRoute'])
      .default('HTTPProxy'),
  )
  return command.action(async ({ filename, to }: Flags) => {
    const objects = await readManifests(filename)
    const source: Kind = to === 'HTTPProxy' ? IngressRoute : HTTPProxy
    const isSource = (object: Obj) => object.kind === source.kind && object.apiVersion === apiVersionOf(source)
    const from = objects.filter(isSource)
    const converted = to === 'HTTPProxy' ? toHttpProxies(from) : toIngressRoutes(from)
    const results: readonly Obj[] = converted.objects
    const rest = objects.filter((object) => !isSource(object))
    io.stdout.write([...rest, ...results].map((object) => stringify(object)).join('---\n'))
    if (from.length === 0)
      io.stderr.write(`no ${source.kind} (${apiVersionOf(source)}) is given; nothing was converted\n`)
    for (const { key, at, message } of converted.notes) io.stderr.write(`${source.kind} ${key}: ${at}: ${message}\n`)
    io.exit(converted.notes.length === 0 ? EXIT.ok : EXIT.changes)
  })
}
