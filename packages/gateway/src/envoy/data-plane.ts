/**
 * Envoy as the data plane: the configuration becomes resources (xds/resources.ts), which the ADS server hands to every Envoy
 * that asks. One Envoy can be run by this process (process.ts); others connect to the xDS port with mutual TLS.
 */
import { ServerCredentials } from '@grpc/grpc-js'
import { untilAborted, type Logger } from '@seamark/kube'
import type { DataPlane } from '../ir/data-plane.ts'
import type { Endpoint, EndpointSource } from '../ir/endpoint.ts'
import type { ListenAddresses } from '../ir/listen-addresses.ts'
import { createAdsServer } from '../xds/ads-server.ts'
import { endpointsResource } from '../xds/clusters.ts'
import type { Rejection } from '../xds/rejections.ts'
import type { Resource } from '../xds/resource.ts'
import { translate, TranslationMemo } from '../xds/resources.ts'
import { serverCredentials, type XdsServerFiles } from './credentials.ts'
import { prepareFolder, runEnvoy, xdsSocketOf } from './process.ts'

export interface EnvoyDataPlaneOptions {
  /** Where the listeners of Envoy are. */
  readonly addresses: ListenAddresses
  readonly endpoints: EndpointSource
  readonly log: Logger
  readonly onRejections: (rejections: readonly Rejection[]) => void
  /** An Envoy to run: its program, and a folder for its sockets and files. */
  readonly process?: { readonly program: string; readonly folder: string }
  /** A port for Envoys that others run. */
  readonly port?: XdsPort
}

export interface XdsPort {
  readonly host: string
  readonly port: number
  /** Undefined: without TLS, for tests and networks that authenticate themselves. */
  readonly tls?: XdsServerFiles
  /** Resolves when the files are there. @default they are */
  readonly ready?: Promise<void>
  readonly onListening?: (port: number) => void
}

export function envoyDataPlane(options: EnvoyDataPlaneOptions): DataPlane {
  const { addresses, endpoints, log, process, port } = options
  const server = createAdsServer({ log, onRejections: options.onRejections })
  const memo = new TranslationMemo()
  /** Clusters by the name of their endpoints. */
  let clustersOf = new Map<string, string[]>()
  /** What was sent last of a cluster, and from which list: an unchanged one is the same object. */
  let assigned = new Map<string, { list: readonly Endpoint[]; resource: Resource }>()

  const resourcesOf = (names: Iterable<string>): Map<string, Resource> => {
    const resources = new Map<string, Resource>()
    for (const name of names)
      for (const cluster of clustersOf.get(name) ?? []) resources.set(cluster, assignmentOf(cluster, endpoints(name)))
    return resources
  }

  const assignmentOf = (cluster: string, list: readonly Endpoint[]): Resource => {
    const before = assigned.get(cluster)
    if (before?.list === list) return before.resource
    const resource = endpointsResource(cluster, list)
    assigned.set(cluster, { list, resource })
    return resource
  }

  return {
    apply(ir) {
      clustersOf = new Map()
      for (const { name, upstream } of ir.clusters) {
        if (upstream.kind !== 'endpoints') continue
        const list = clustersOf.get(upstream.name) ?? []
        clustersOf.set(upstream.name, list)
        list.push(name)
      }
      const resources = resourcesOf(clustersOf.keys())
      assigned = new Map([...assigned].filter(([cluster]) => resources.has(cluster)))
      server.publish(translate(ir, addresses, memo), resources)
    },
    counters: () => ({ streams: server.streams }),
    updateEndpoints(names) {
      const changed = resourcesOf(names)
      if (changed.size > 0) server.updateEndpoints(changed)
    },
    async run({ signal, onReady }) {
      if (port !== undefined) {
        await Promise.race([port.ready, untilAborted(signal)])
        if (signal.aborted) return
        const credentials = port.tls === undefined ? ServerCredentials.createInsecure() : serverCredentials(port.tls)
        const host = port.host.includes(':') ? `[${port.host}]` : port.host
        port.onListening?.(await server.listen(`${host}:${port.port}`, credentials))
      }
      try {
        if (process === undefined) {
          onReady(addresses)
          await untilAborted(signal)
          return
        }
        const { program, folder } = process
        await prepareFolder(folder)
        await server.listen(`unix:${xdsSocketOf(folder)}`, ServerCredentials.createInsecure())
        const listeners = (['http', 'https'] as const).filter((each) => addresses[each] !== undefined)
        await runEnvoy({ program, folder, log, listeners, onReady: once(onReady) }, signal)
      } finally {
        await server.close()
      }
    },
  }
}

function once<T>(run: (value: T) => void): (value: T) => void {
  let isDone = false
  return (value) => {
    if (isDone) return
    isDone = true
    run(value)
  }
}
