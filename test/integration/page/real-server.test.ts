/** The page of a real API server: its tokens, its rights, and what is left when it is gone. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HostPage } from '@seamark/dashboard'
import { needs } from '@seamark/kit'
import { Namespace } from '@seamark/kube'
import { createAuthority } from '@seamark/kube/certificates'
import { ControlPlane } from '@seamark/kube/testing'
import { DNSEndpoint } from '@seamark/operator'
import { expect, it } from 'vitest'
import { POLL, readState, request, startPageOf, StreamReader, ZONE } from './page-environment.ts'

const RBAC = 'rbac.authorization.k8s.io'
const RED = `red.${ZONE}`
const BLUE = `blue.${ZONE}`

async function post(plane: ControlPlane, path: string, body: object): Promise<unknown> {
  const { status, body: answered } = await plane.request('POST', path, body)
  if (status !== 201) throw new Error(`${path}: ${status} ${JSON.stringify(answered)}`)
  return answered
}

/** A bearer token of a ServiceAccount of namespace red. */
async function tokenOf(plane: ControlPlane, name: string, audiences?: readonly string[]): Promise<string> {
  const answered = await post(plane, `/api/v1/namespaces/red/serviceaccounts/${name}/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 600, ...(audiences !== undefined && { audiences }) },
  })
  return (answered as { status: { token: string } }).status.token
}

async function createUsers(plane: ControlPlane): Promise<void> {
  const subjects = (name: string) => [{ kind: 'ServiceAccount', namespace: 'red', name }]
  for (const name of ['ann', 'admin', 'nobody'])
    await post(plane, '/api/v1/namespaces/red/serviceaccounts', {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name },
    })
  await post(plane, `/apis/${RBAC}/v1/namespaces/red/roles`, {
    apiVersion: `${RBAC}/v1`,
    kind: 'Role',
    metadata: { name: 'reader' },
    rules: [{ apiGroups: ['externaldns.k8s.io'], resources: ['dnsendpoints'], verbs: ['get', 'list'] }],
  })
  await post(plane, `/apis/${RBAC}/v1/namespaces/red/rolebindings`, {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { name: 'ann' },
    roleRef: { apiGroup: RBAC, kind: 'Role', name: 'reader' },
    subjects: subjects('ann'),
  })
  await post(plane, `/apis/${RBAC}/v1/clusterrolebindings`, {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'page-admin' },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: subjects('admin'),
  })
}

it.skipIf(!needs('kube-apiserver', 'etcd'))(
  'on a real kube-apiserver, a token reads what its ServiceAccount may, and the last state stays when the server is gone',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'seamark-page-'))
    try {
      const plane = await ControlPlane.start()
      const authority = await createAuthority({ commonName: 'test' })
      const leaf = await authority.issue({ commonName: 'page', ipAddresses: ['127.0.0.1'], usages: 'server' })
      const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
      await writeFile(certFile, leaf.certPem)
      await writeFile(keyFile, leaf.keyPem)
      const server = { kubeconfig: plane.kubeconfig(), stop: async () => plane.stop() }
      await using page = await startPageOf(server, { requireToken: true, certFile, keyFile })
      for (const name of ['red', 'blue']) {
        await page.client.create(Namespace, { metadata: { name } })
        await page.client.create(DNSEndpoint, {
          metadata: { namespace: name, name: 'web' },
          spec: {
            endpoints: [{ dnsName: `${name}.${ZONE}`, recordType: 'A', targets: ['203.0.113.1'], recordTTL: 60 }],
          },
        })
      }
      await createUsers(plane)
      const given = async (user: string, audiences?: readonly string[]) => ({
        ca: authority.certPem,
        headers: { authorization: `Bearer ${await tokenOf(plane, user, audiences)}` },
      })
      const [ann, admin, nobody] = await Promise.all(['ann', 'admin', 'nobody'].map(async (user) => given(user)))
      const names = async (as: typeof ann) => (await readState(page.url, as)).hosts.map(({ name }) => name)
      await expect.poll(async () => names(admin), POLL).toEqual([BLUE, RED])
      expect(await names(ann)).toEqual([RED])
      expect(JSON.stringify(await readState(page.url, ann))).not.toContain('blue')
      expect(await names(nobody)).toEqual([])
      // A token for another service of the cluster is none for this one.
      const foreign = await request(page.url, '/api/v1/state', await given('admin', ['vault']))
      expect(foreign.status).toBe(401)
      const { text } = await request(page.url, `/api/v1/hosts/${RED}`, ann)
      expect((JSON.parse(text) as HostPage).objects[0]?.yaml).toContain(RED)
      expect((await request(page.url, `/api/v1/hosts/${BLUE}`, ann)).status).toBe(404)

      const reader = await StreamReader.open(page.url, undefined, ann)
      await expect.poll(() => reader.beat?.data.isCurrent, POLL).toBe(true)
      await plane.stop()
      await expect.poll(() => reader.beat?.data.isCurrent, POLL).toBe(false)
      // Of a reader whose rights are known, and of one whose token cannot be looked at.
      expect(await names(ann)).toEqual([RED])
      const unknown = { ca: authority.certPem, headers: { authorization: 'Bearer another' } }
      expect((await request(page.url, '/api/v1/state', unknown)).status).toBe(503)
      expect(reader.state?.hosts.map(({ name }) => name)).toEqual([RED])
      reader.close()
    } finally {
      await rm(folder, { recursive: true })
    }
  },
)
