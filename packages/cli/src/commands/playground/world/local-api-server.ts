/**
 * An embedded API server on this machine, with the credentials of its administrator. Its port can be closed and opened again,
 * as a failure and its repair.
 */
import {
  type ApiServer,
  createApiServer,
  DataDirectoryError,
  type Faults,
  newToken,
  openServerData,
  type ServerListener,
  type TlsOptions,
  writeKubeconfig,
} from '@seamark/apiserver'
import { type Client, type Cluster, configFromText, connect, CustomResourceDefinition } from '@seamark/kube'
import type { Authority } from '@seamark/kube/certificates'
import { CommandError, EXIT } from '../../../command.ts'
import { listenPreferably } from './ports.ts'

export interface LocalApiServerOptions {
  /** Issues the serving certificate of a server without a folder. */
  readonly authority: Authority
  readonly definitions: readonly object[]
  /** Keeps objects, CA and tokens. @default in memory only */
  readonly folder?: string
  /** Taken where it is free. @default any free port */
  readonly port?: number
}

/** What a client needs. */
export interface ApiAccess {
  readonly url: string
  readonly token: string
  readonly caPem: string
}

export class LocalApiServer {
  readonly access: ApiAccess
  readonly client: Client
  readonly #server: ApiServer
  readonly #tls: TlsOptions | 'self-signed'
  readonly #connection: Cluster
  #listener: ServerListener | undefined

  private constructor(
    server: ApiServer,
    listener: ServerListener,
    { tls, access }: { readonly tls: TlsOptions | 'self-signed'; readonly access: ApiAccess },
  ) {
    this.#server = server
    this.#listener = listener
    this.#tls = tls
    this.access = access
    this.#connection = connect(configFromText(this.kubeconfig), { name: 'user', fieldManager: 'you' })
    this.client = this.#connection.client
  }

  static async start({ authority, definitions, folder, port = 0 }: LocalApiServerOptions): Promise<LocalApiServer> {
    const data = folder === undefined ? undefined : await openFolder(folder)
    const token = data?.credentials.adminToken ?? newToken()
    const server = createApiServer({
      ...(data !== undefined && { data }),
      tokens: new Map([[token, { name: 'admin', groups: ['system:masters'] }]]),
      anonymous: 'refused',
    })
    try {
      const tls = data === undefined ? await issue(authority) : 'self-signed'
      const listener = await listenPreferably(port, async (free) => server.listen({ tls, port: free }))
      const caPem = listener.caPem ?? (tls === 'self-signed' ? '' : tls.ca)
      const local = new LocalApiServer(server, listener, { tls, access: { url: listener.url, token, caPem } })
      for (const definition of definitions) await local.#define(definition as CustomResourceDefinition)
      return local
    } catch (error) {
      await server.close()
      throw error
    }
  }

  /** What its clients see of it can be changed. */
  get faults(): Faults {
    return this.#server.faults
  }

  get kubeconfig(): string {
    const { url: server, token, caPem } = this.access
    return writeKubeconfig({ server, token, caPem })
  }

  get port(): number {
    return Number(new URL(this.access.url).port)
  }

  async closePort(): Promise<void> {
    await this.#listener?.close()
    this.#listener = undefined
  }

  async openPort(): Promise<void> {
    this.#listener ??= await this.#server.listen({ tls: this.#tls, port: this.port })
  }

  async stop(): Promise<void> {
    await this.#connection.close()
    await this.#server.close()
  }

  /** A server with a folder may have it already. */
  async #define(definition: CustomResourceDefinition): Promise<void> {
    if ((await this.client.find(CustomResourceDefinition, definition.metadata.name ?? '')) === undefined)
      await this.client.create(CustomResourceDefinition, definition)
  }
}

async function openFolder(folder: string): ReturnType<typeof openServerData> {
  try {
    return await openServerData(folder)
  } catch (error) {
    if (error instanceof DataDirectoryError)
      throw new CommandError(`--data-dir: ${error.message}`, EXIT.error, { cause: error })
    throw error
  }
}

async function issue(authority: Authority): Promise<TlsOptions> {
  const { certPem, keyPem } = await authority.issue({
    commonName: 'kubernetes',
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  })
  return { cert: certPem, key: keyPem, ca: authority.certPem }
}
