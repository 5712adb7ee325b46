/** A kube-apiserver that records what each ServiceAccount asked it for, and refuses owner references that it may not make. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, type Cluster, configFromText, connect } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'

/** `create dnsendpoints.externaldns.k8s.io`, with `at home` where it was asked in the namespace of the account. */
export type Use = string

interface AuditEvent {
  readonly stage: string
  readonly verb: string
  readonly user: { readonly username: string }
  readonly objectRef?: {
    readonly apiGroup?: string
    readonly resource?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly requestURI: string
  readonly responseStatus?: { readonly code?: number; readonly message?: string }
}

const POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata', userGroups: ['system:serviceaccounts'] }, { level: 'None' }],
}

export class AuditedPlane implements AsyncDisposable {
  readonly plane: ControlPlane
  readonly client: Client
  readonly #cluster: Cluster
  readonly #folder: string

  private constructor(plane: ControlPlane, folder: string) {
    this.plane = plane
    this.#folder = folder
    this.#cluster = connect(configFromText(plane.kubeconfig()), { fieldManager: 'test-user' })
    this.client = this.#cluster.client
  }

  static async start(crds: readonly object[]): Promise<AuditedPlane> {
    const folder = mkdtempSync(join(tmpdir(), 'seamark-audit-'))
    writeFileSync(join(folder, 'policy.yaml'), JSON.stringify(POLICY))
    const plane = await ControlPlane.start({
      crds,
      flags: [
        `--audit-policy-file=${join(folder, 'policy.yaml')}`,
        `--audit-log-path=${join(folder, 'audit.log')}`,
        '--audit-log-mode=blocking',
        '--enable-admission-plugins=OwnerReferencesPermissionEnforcement',
      ],
    })
    return new AuditedPlane(plane, folder)
  }

  /** What the account asked for and was given. */
  uses(account: string): Set<Use> {
    return new Set(
      this.#events(account).flatMap((event) => (isDenied(event) ? [] : usesOf(event, namespaceOf(account)))),
    )
  }

  /** In words. */
  denied(account: string): string[] {
    return this.#events(account)
      .filter(isDenied)
      .map(({ verb, requestURI, responseStatus }) => `${verb} ${requestURI}: ${responseStatus?.message ?? ''}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster.close()
    await this.plane.stop()
    rmSync(this.#folder, { recursive: true })
  }

  #events(account: string): AuditEvent[] {
    const lines = readFileSync(join(this.#folder, 'audit.log'), 'utf8').split('\n')
    return lines
      .filter((line) => line.includes(account))
      .map((line) => JSON.parse(line) as AuditEvent)
      .filter(({ user }) => user.username === account)
  }
}

export const accountOf = (namespace: string, name: string): string => `system:serviceaccount:${namespace}:${name}`

function namespaceOf(account: string): string {
  return account.split(':')[2] ?? ''
}

function isDenied({ responseStatus }: AuditEvent): boolean {
  return responseStatus?.code === 403
}

/** Everybody may read these, by roles that every cluster has. */
const FOR_ALL = new Set([
  'selfsubjectaccessreviews.authorization.k8s.io',
  'selfsubjectrulesreviews.authorization.k8s.io',
])

function usesOf({ verb, objectRef, responseStatus }: AuditEvent, home: string): Use[] {
  if (objectRef?.resource === undefined) return []
  const { apiGroup = '', resource, subresource, namespace } = objectRef
  const path = subresource === undefined ? resource : `${resource}/${subresource}`
  const what = apiGroup === '' ? path : `${path}.${apiGroup}`
  if (FOR_ALL.has(what)) return []
  const where = namespace === home ? ' at home' : ''
  // A server-side apply that creates an object is a patch that also needs the right to create.
  const verbs = verb === 'patch' && responseStatus?.code === 201 ? ['patch', 'create'] : [verb]
  return verbs.map((each) => `${each} ${what}${where}`)
}
