import { expect, it } from 'vitest'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  findLockFaults,
  findRoleFaults,
  findUnpinnedBases,
  findUnpinnedImages,
  pinBase,
  pinImage,
} from './supply-chain.ts'

const digest = `sha512-${'A'.repeat(86)}==`

it('accepts digests, links, bundled packages and install scripts that are named', () => {
  const packages = {
    '': {},
    'packages/dns': {},
    'node_modules/@seamark/dns': { link: true, resolved: 'packages/dns' },
    'node_modules/a': { integrity: digest, hasInstallScript: true },
    'node_modules/a/node_modules/b': { inBundle: true },
  }
  expect(findLockFaults({ packages }, { a: false })).toEqual([])
})

it.each([
  ['no digest', { 'node_modules/a': {} }, {}],
  ['a weak digest', { 'node_modules/a': { integrity: 'sha1-abc' } }, {}],
  ['an address', { 'node_modules/a': { integrity: digest, resolved: 'https://registry.example/a.tgz' } }, {}],
  ['an install script that nobody judged', { 'node_modules/a': { integrity: digest, hasInstallScript: true } }, {}],
  ['a judgement without a script', { 'node_modules/a': { integrity: digest } }, { a: true }],
])('refuses %s in the lock file', (_, packages, allowed) => {
  expect(findLockFaults({ packages }, allowed)).toEqual([expect.stringContaining('a')])
})

const role = (rule: string, kind = 'ClusterRole') => `
kind: ${kind}
metadata: { name: reader }
rules: [${rule}]
---
kind: ClusterRoleBinding
metadata: { name: reader }
roleRef: { kind: ClusterRole, name: reader }
`

it.each([
  ['a wildcard of verbs', role('{ apiGroups: [""], resources: [services], verbs: ["*"] }')],
  ['a wildcard of groups', role('{ apiGroups: ["*"], resources: [services], verbs: [get] }')],
  ['a wildcard of subresources', role('{ apiGroups: [""], resources: ["*/status"], verbs: [get] }')],
  ['impersonation', role('{ apiGroups: [""], resources: [users], verbs: [impersonate] }')],
  ['binding', role('{ apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind] }')],
  ['commands in Pods', role('{ apiGroups: [""], resources: [pods/exec], verbs: [create] }')],
  ['commands in Pods, over a WebSocket', role('{ apiGroups: [""], resources: [pods/exec], verbs: [get] }', 'Role')],
  ['attaching to Pods', role('{ apiGroups: [""], resources: [pods/attach], verbs: [create] }')],
  ['connections to Pods', role('{ apiGroups: [""], resources: [pods/portforward], verbs: [create] }')],
  ['containers in Pods', role('{ apiGroups: [""], resources: [pods/ephemeralcontainers], verbs: [patch] }')],
  ['the kubelet', role('{ apiGroups: [""], resources: [nodes/proxy], verbs: [get] }')],
  ['tokens', role('{ apiGroups: [""], resources: [serviceaccounts/token], verbs: [create] }', 'Role')],
  ['new Pods', role('{ apiGroups: [""], resources: [pods], verbs: [create] }', 'Role')],
  ['new workloads', role('{ apiGroups: [apps], resources: [deployments], verbs: [patch] }', 'Role')],
  ['roles', role('{ apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [update] }', 'Role')],
  ['bindings', role('{ apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [create] }', 'Role')],
  ['bindings of the cluster', role('{ resources: [clusterrolebindings], verbs: [patch], resourceNames: [x] }')],
  ['all webhooks', role('{ resources: [mutatingwebhookconfigurations], verbs: [patch] }')],
  ['new webhooks', role('{ resources: [validatingwebhookconfigurations], verbs: [create], resourceNames: [x] }')],
  [
    'the end of a webhook',
    role('{ resources: [validatingwebhookconfigurations], verbs: [delete], resourceNames: [x] }'),
  ],
  ['policies', role('{ resources: [validatingadmissionpolicybindings], verbs: [delete], resourceNames: [x] }')],
  ['certificates', role('{ resources: [certificatesigningrequests/approval], verbs: [update] }')],
  ['escalation', role('{ apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate] }')],
  ['Secrets of every namespace', role('{ apiGroups: [""], resources: [secrets], verbs: [list] }')],
])('refuses %s in a role of an example', (_, text) => {
  expect(findRoleFaults('role.yaml', text)).toEqual([expect.stringMatching(/^role\.yaml: (?:Cluster)?Role reader /)])
})

it('accepts Secrets by name, in one namespace, and of a reader that is listed', () => {
  expect(findRoleFaults('a', role('{ resources: [secrets], verbs: [get], resourceNames: [x] }'))).toEqual([])
  expect(findRoleFaults('a', role('{ resources: [secrets], verbs: [get] }', 'Role'))).toEqual([])
  expect(findRoleFaults('a', role('{ resources: [secrets], verbs: [get] }'), { reader: 'why' })).toEqual([])
})

it('accepts to patch webhooks by name, and to read what may not be written', () => {
  const webhooks =
    '{ resources: [mutatingwebhookconfigurations], verbs: [get, patch, update], resourceNames: [seamark] }'
  expect(findRoleFaults('a', role(webhooks))).toEqual([])
  const read =
    '{ resources: [pods, deployments, roles, rolebindings, validatingwebhookconfigurations], verbs: [get, list, watch] }'
  expect(findRoleFaults('a', role(read))).toEqual([])
})

it('pins every stage of the image to one digest, also again', () => {
  const file =
    'FROM --platform=$BUILDPLATFORM docker.io/library/node:24-slim AS build\nRUN x\nFROM docker.io/library/node:24-slim\n'
  const [first, second] = [`sha256:${'1'.repeat(64)}`, `sha256:${'2'.repeat(64)}`]
  expect(findUnpinnedBases(file)).toHaveLength(2)
  const pinned = pinBase(file, first)
  expect(pinned).toContain(`FROM --platform=$BUILDPLATFORM docker.io/library/node:24-slim@${first} AS build\n`)
  expect(findUnpinnedBases(pinned)).toEqual([])
  expect(pinBase(pinned, second)).toBe(pinned.replaceAll(first, second))
})

it('refuses to pin to what is no digest, and different images to one', () => {
  expect(() => pinBase('FROM a\n', 'latest')).toThrow('latest is no digest')
  expect(() => pinBase('FROM a\nFROM b\n', `sha256:${'1'.repeat(64)}`)).toThrow('a, b')
})

it('pins the images of the chart, and leaves everything else of the values as it is', () => {
  const values = readFileSync(join(import.meta.dirname, '../charts/seamark/values.yaml'), 'utf8')
  const paths = ['image', 'gateway.image']
  const digests = [`sha256:${'1'.repeat(64)}`, `sha256:${'2'.repeat(64)}`]
  const pinned = paths.reduce((all, path, index) => pinImage(all, path, digests[index] ?? ''), values)
  expect(findUnpinnedImages(pinned, paths)).toEqual([])
  const changed = (text: string, other: string) => text.split('\n').filter((line) => !other.split('\n').includes(line))
  expect(changed(pinned, values)).toEqual(digests.map((each) => expect.stringContaining(each) as string))
  expect(pinned.split('\n')).toHaveLength(values.split('\n').length)
  expect(() => pinImage(values, 'image', 'latest')).toThrow('latest is no digest')
})
