/** The gateway of @seamark/gateway in front of one API server, on an address of its own. */
import { BUILD_DEFAULTS, GATEWAY_FIELD_MANAGER, setUpGateway } from '@seamark/gateway'
import { configFromText, connect, createLogger, manager } from '@seamark/kube'

export interface LocalGatewayOptions {
  readonly name: string
  readonly kubeconfig: string
  /** A loopback address. */
  readonly address: string
  /** 0: a free one. */
  readonly port: number
  /** Of the program that serves every endpoint. */
  readonly backendPort: () => number
}

const GRACE_MS = 500

export class LocalGateway {
  readonly #options: LocalGatewayOptions
  #port: number
  #running: { stop(): Promise<void> } | undefined
  #answers: () => ReadonlyMap<string, number> | undefined = () => undefined

  constructor(options: LocalGatewayOptions) {
    this.#options = options
    this.#port = options.port
  }

  /** The same after it was stopped and started. */
  get port(): number {
    return this.#port
  }

  /** Requests that were answered, by class of the status; undefined while it is stopped. */
  get answers(): ReadonlyMap<string, number> | undefined {
    return this.#running === undefined ? undefined : this.#answers()
  }

  async open(): Promise<void> {
    if (this.#running !== undefined) return
    const { name, kubeconfig, address, backendPort } = this.#options
    const stopping = new AbortController()
    const log = createLogger({ level: 'silent' })
    const connection = connect(configFromText(kubeconfig), { name, fieldManager: GATEWAY_FIELD_MANAGER, log })
    const mgr = await manager({ cluster: connection, fieldManager: GATEWAY_FIELD_MANAGER, log, grace: GRACE_MS })
    const ready = new Promise<number>((resolve) => {
      setUpGateway(mgr, {
        settings: BUILD_DEFAULTS,
        http: { host: address, port: this.#port },
        statusAddresses: [{ ip: address }],
        routeEndpoint: () => ({ host: '127.0.0.1', port: backendPort() }),
        onAnswers: (read) => (this.#answers = read),
        onReady: ({ http }) => resolve(http?.port ?? 0),
      })
    })
    const done = mgr.run(stopping.signal)
    done.catch(() => undefined)
    this.#running = {
      stop: async () => {
        stopping.abort()
        await done.catch(() => undefined)
        await connection.close()
      },
    }
    this.#port = await Promise.race([ready, done.then(() => this.#port)])
  }

  async close(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    await running?.stop()
  }
}
