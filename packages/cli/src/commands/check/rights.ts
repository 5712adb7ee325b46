/** The rights of the parts that are on, each asked of the API server with the credentials of this command. */
import type { Client } from '@seamark/kube'
import {
  type ManagerConfiguration,
  MANAGER_PARTS,
  mayDo,
  type PartName,
  resourceNameOf,
  type Right,
} from '@seamark/operator'
import type { Finding } from './finding.ts'

const DEADLINE_MS = 10_000
/** Reviews at a time. */
const CONCURRENCY = 8

interface Question {
  readonly part: PartName
  readonly right: Right
  readonly verb: string
}

export async function checkRights(
  client: Client,
  {
    parts,
    namespace,
    config,
  }: { readonly parts: readonly PartName[]; readonly namespace: string; readonly config: ManagerConfiguration },
  signal: AbortSignal,
): Promise<Finding[]> {
  const questions = parts.flatMap((part) =>
    MANAGER_PARTS[part].rights.flatMap((right: Right) => right.verbs.map((verb): Question => ({ part, right, verb }))),
  )
  const isAllowed = async ({ right, verb }: Question): Promise<boolean> => {
    const [resource = '', subresource] = right.resource.split('/')
    const attributes = {
      group: right.group,
      resource,
      verb,
      ...(subresource !== undefined && { subresource }),
      ...(right.place === 'home' && { namespace }),
    }
    const options = { deadlineMs: DEADLINE_MS, signal }
    for (const name of right.names ?? [undefined]) {
      const named = name === undefined ? attributes : { ...attributes, name: ownName(name, config) }
      if (!(await mayDo(client, named, options))) return false
    }
    return true
  }
  const missing: Question[] = []
  const next = questions.values()
  const ask = async (): Promise<void> => {
    for (const question of next) if (!(await isAllowed(question))) missing.push(question)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, ask))
  return parts.flatMap((part): Finding[] => {
    const lost = missing.filter((each) => each.part === part)
    const required = lost.filter(({ right }) => right.isOptional !== true && right.isAskedByServer !== true)
    if (lost.length === 0) return [{ topic: 'rights', state: 'ok', message: `${part}: all are granted` }]
    const shown = lost.map(
      ({ right, verb }) => `${verb} ${resourceNameOf(right)}${right.place === 'home' ? ` in ${namespace}` : ''}`,
    )
    return [
      {
        topic: 'rights',
        state: required.length === 0 ? 'warning' : 'fault',
        message: `${part}: ${shown.join(', ')} ${lost.length === 1 ? 'is' : 'are'} not granted to these credentials; use the roles of the chart, or of examples/deploy`,
      },
    ]
  })
}

/** Names of objects of an installation contain the name of its release. */
function ownName(name: string, { admission }: ManagerConfiguration): string {
  return name.replace('{{ .name }}', admission.configuration)
}
