/** Pods of the chart as processes: what of them a Service, a Deployment and the kubelet see. */
import { Agent, request } from 'node:http'
import { connect, type NetConnectOpts } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ManagerProcess } from '../manager.ts'

export interface Pod {
  /** Where its ports are on this machine, by their names. */
  readonly ports: ReadonlyMap<string, NetConnectOpts>
  /** One readiness probe: why it fails. */
  unready(): Promise<string | undefined>
  /** The hook before its end. */
  preStop(): Promise<unknown>
  /** SIGTERM; resolves when it has ended. */
  end(): Promise<void>
}

export interface Container {
  readonly readinessProbe: { readonly httpGet?: { readonly path: string } }
  readonly lifecycle: {
    readonly preStop: { readonly sleep?: { readonly seconds: number }; readonly httpGet?: { readonly path: string } }
  }
}

/** Of a manager. */
export function managerPod(manager: ManagerProcess, { readinessProbe, lifecycle }: Container): Pod {
  const at = (pattern: RegExp): NetConnectOpts | undefined => {
    const port = Number(pattern.exec(manager.log)?.[1] ?? 0)
    return port === 0 ? undefined : { host: '127.0.0.1', port }
  }
  return {
    get ports() {
      const ports = {
        probes: at(/^ready 127\.0\.0\.1:(\d+)/m),
        dns: at(/^dns 127\.0\.0\.1:(\d+)/m),
        http: at(/^gateway 127\.0\.0\.1:(\d+)/m),
        xds: at(/^xds 127\.0\.0\.1:(\d+)/m),
      }
      return new Map(Object.entries(ports).flatMap(([name, port]) => (port === undefined ? [] : [[name, port]])))
    },
    async unready() {
      const probes = this.ports.get('probes')
      if (probes === undefined) return `no port for probes:\n${manager.log}`
      const answer = await ask(probes, readinessProbe.httpGet?.path ?? '')
      return answer?.status === 200 ? undefined : `${answer?.body ?? 'no answer'}\n${manager.log.slice(-3_000)}`
    },
    preStop: async () => sleep((lifecycle.preStop.sleep?.seconds ?? 0) * 1_000),
    end: async () => manager.stop(),
  }
}

/** Undefined: no answer. */
export async function ask(
  to: NetConnectOpts,
  path: string,
  host = 'seamark.test',
): Promise<{ status: number | undefined; body: string } | undefined> {
  return new Promise((resolve) => {
    const call = request({ path, headers: { host }, agent: agentTo(() => to) }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
      response.once('close', () => resolve({ status: response.statusCode, body }))
    })
    call.once('error', () => resolve(undefined))
    call.end()
  })
}

/** Of connections to where the function says, for each. */
export function agentTo(pick: () => NetConnectOpts, isKept = false): Agent {
  const agent = new Agent({ keepAlive: isKept, maxSockets: 1 })
  return Object.assign(agent, { createConnection: () => connect(pick()) })
}
