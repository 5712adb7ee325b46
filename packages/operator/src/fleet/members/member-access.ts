/**
 * Contact with the API server of a member: whether it answers, who it is, what it serves, and whether our credentials suffice.
 * The rights are those of the role that `seamark cluster add` creates.
 */
import { cleanText, type Client, Forbidden, messageOf, Namespace, Unauthorized } from '@seamark/kube'
import { mayDo } from '../../rights/access-review.ts'
import { MEMBER_ROLE } from '../../rights/member-rights.ts'
import type { Right } from '../../rights/right.ts'
import type { Contact } from '../decide/cluster-status.ts'

/** Kinds of roots by group and resource. */
const SERVED = [
  { kind: 'Ingress', group: 'networking.k8s.io', resource: 'ingresses' },
  { kind: 'HTTPRoute', group: 'gateway.networking.k8s.io', resource: 'httproutes' },
  { kind: 'Route', group: 'route.openshift.io', resource: 'routes' },
]

const DEADLINE_MS = 5_000

/** `v1.34.1+k3s1`. What is none is not shown: it is the member's text. */
const VERSION = /^v?\d{1,4}\.\d{1,4}[\w.+-]{0,48}$/
const UID = /^[\w.-]{1,64}$/

export async function contactMember(client: Client, signal: AbortSignal): Promise<Contact> {
  try {
    const ready = await client.request({ method: 'GET', path: '/readyz', deadlineMs: DEADLINE_MS, signal })
    if (ready.status === 401)
      return { state: 'failed', isDenied: true, message: 'the API server refuses the credentials (401)' }
    // 403: some servers protect /readyz; an answer is an answer.
    if (ready.status >= 500) return { state: 'failed', isDenied: false, message: `/readyz answers ${ready.status}` }
    const [uid, version, groups] = await Promise.all([
      readUid(client, signal),
      readVersion(client, signal),
      readGroups(client, signal),
    ])
    const served = SERVED.filter(({ group }) => groups.has(group))
    const checked = MEMBER_ROLE.filter(
      ({ group, isOptional }) => isOptional !== true && (group === '' || groups.has(group)),
    )
    const missingVerbs: string[] = []
    for (const right of checked) missingVerbs.push(...(await findMissing(client, right, signal)))
    return { state: 'answered', uid, version, servedKinds: served.map(({ kind }) => kind), missingVerbs }
  } catch (error) {
    signal.throwIfAborted()
    return {
      state: 'failed',
      isDenied: error instanceof Unauthorized || error instanceof Forbidden,
      message: saying(error),
    }
  }
}

/** Only whether it answers: the whole check is not repeated every ten seconds. */
export async function isAnswering(client: Client, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { status } = await client.request({ method: 'GET', path: '/readyz', deadlineMs: DEADLINE_MS, signal })
    return status >= 500 || status === 401 ? `/readyz answers ${status}` : undefined
  } catch (error) {
    signal.throwIfAborted()
    return saying(error)
  }
}

/** Errors of a parser repeat a part of what the member answered. */
function saying(error: unknown): string {
  return cleanText(messageOf(error), MAX_MESSAGE_LENGTH)
}

/** Characters of a message in a condition. */
const MAX_MESSAGE_LENGTH = 1_024

async function readUid(client: Client, signal: AbortSignal): Promise<string> {
  const { uid } = (await client.get(Namespace, 'kube-system', { signal })).metadata
  return typeof uid === 'string' && UID.test(uid) ? uid : ''
}

async function readVersion(client: Client, signal: AbortSignal): Promise<string> {
  const { body, status } = await client.request({ method: 'GET', path: '/version', deadlineMs: DEADLINE_MS, signal })
  if (status !== 200) return ''
  const { gitVersion } = JSON.parse(body.toString('utf8')) as { gitVersion?: unknown }
  return typeof gitVersion === 'string' && VERSION.test(gitVersion) ? gitVersion : ''
}

async function readGroups(client: Client, signal: AbortSignal): Promise<Set<string>> {
  const { body, status } = await client.request({ method: 'GET', path: '/apis', deadlineMs: DEADLINE_MS, signal })
  if (status !== 200) throw new TypeError(`/apis answers ${status}`)
  const { groups = [] } = JSON.parse(body.toString('utf8')) as { groups?: { name: string }[] }
  return new Set(groups.map((group) => group?.name))
}

async function findMissing(client: Client, { group, resource, verbs }: Right, signal: AbortSignal): Promise<string[]> {
  const [name = '', subresource] = resource.split('/')
  const missing = await Promise.all(
    verbs.map(async (verb) => {
      const isAllowed = await mayDo(
        client,
        { group, resource: name, verb, ...(subresource !== undefined && { subresource }) },
        { deadlineMs: DEADLINE_MS, signal },
      )
      return isAllowed ? [] : [`${verb} ${resource}${group === '' ? '' : `.${group}`}`]
    }),
  )
  return missing.flat()
}
