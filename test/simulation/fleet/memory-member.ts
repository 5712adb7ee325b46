/** What an in-memory member answers to requests that are not about objects: it serves Ingresses, and allows everything. */
import type { Client } from '@seamark/kube'

type Response = Awaited<ReturnType<Client['request']>>

export function answerAsMember(path: string): Response {
  return { status: 200, headers: {}, body: Buffer.from(bodyOf(path)) }
}

function bodyOf(path: string): string {
  if (path === '/version') return '{"gitVersion":"v1.36.0"}'
  if (path === '/apis') return '{"groups":[{"name":"networking.k8s.io"}]}'
  if (path.endsWith('/selfsubjectaccessreviews')) return '{"status":{"allowed":true}}'
  return 'ok'
}

/** A kubeconfig that the registry accepts; nothing in it is ever dialled. */
export function memberKubeconfig(name: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: `https://${name}.clusters.example:6443` } }],
    users: [{ name, user: { token: 'simulated' } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  })
}
