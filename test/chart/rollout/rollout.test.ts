/**
 * Updates of a release lose nothing: while every replica is replaced, clients resolve names over UDP and TCP and send requests, on
 * new connections and on ones that they keep. Each scenario runs in a network namespace of its own, because the API server takes no
 * loopback address for an endpoint.
 */
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { describe, expect, it } from 'vitest'
import { canUnshare, runInNamespace } from '../../integration/gateway/network-namespace.ts'
import { buildBundle } from '../manager.ts'

const runner = join(import.meta.dirname, 'runner.ts')

describe.skipIf(!needs('kube-apiserver', 'etcd', 'helm') || !canUnshare)('while all replicas are replaced', () => {
  it('DNS and the proxy of the manager answer everything', async () => {
    buildBundle()
    expect(await runInNamespace(runner, ['built-in'])).toEqual(new Map([['built-in', undefined]]))
  })

  it.skipIf(!needs('envoy'))('Envoys answer everything, also while their certificates are rotated', async () => {
    buildBundle()
    expect(await runInNamespace(runner, ['envoy'])).toEqual(new Map([['envoy', undefined]]))
  })
})
