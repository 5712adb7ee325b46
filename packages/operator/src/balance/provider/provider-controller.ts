/**
 * Controller of DNSProviders: creates a provider from the settings in its Secret, checks which zones it serves, and registers
 * it for load balancers (provider-registry.ts).
 *
 * Guarantees: new credentials replace the old ones only after they listed the zones, so a rotation leaves no gap, and a wrong
 * one leaves the old provider in use; no message contains a secret; one provider that fails delays no other; a Secret keeps
 * its finalizer while any DNSProvider refers to it.
 */
import { ageOf } from '@seamark/dialects'
import {
  addFinalizer,
  type Context,
  type Immutable,
  type Manager,
  messageOf,
  type Next,
  removeFinalizer,
  requeue,
  Secret,
} from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSProvider } from '../../api/dns-provider.ts'
import type { Provider } from '../../providers/provider.ts'
import type { Reason } from '../../reasons.ts'
import type { Engine } from '../../records/engine.ts'
import { ProviderError } from '../../rrset/error.ts'
import {
  PROVIDER_FINALIZER,
  type ProviderLimits,
  providerStatus,
  readProvider,
  secretKeyOf,
  unknownType,
  usableSecretOf,
} from './decide-provider.ts'
import type { ProviderRegistry, RegisteredProvider } from './provider-registry.ts'
import { RecentEvents } from '../recent.ts'
import { SecretWatch } from './secret-watch.ts'

export interface ProviderControllerOptions {
  readonly registry: ProviderRegistry
  /** Whose DNSProviders and Secrets are used. @default all */
  readonly limits?: ProviderLimits
  /** Creates a provider of a type; undefined: there is no such type. Rejects with what is wrong with the settings. */
  readonly create: (
    type: string,
    name: string,
    values: Readonly<Record<string, string>>,
  ) => Promise<Provider> | undefined
  /** Registers the provider with its zones. */
  readonly engineOf: (provider: Provider) => Engine
  /** Removes all records of ours from the zones of a provider; false: some are left, try again later. */
  readonly cleanUp: (provider: RegisteredProvider, signal: AbortSignal) => Promise<boolean>
}

interface Outcome {
  readonly error?: string
  readonly reason: Reason
  /** Zones of a service change without notice; an error of a service may go away by itself. */
  readonly againAfterMs: number
}

const EVENT_REASON = 'sync'
const ZONES_MS = 300_000
const RETRY_MS = 15_000
const CLEAN_UP_RETRY_MS = 30_000

export function setUpProviders(mgr: Manager, options: ProviderControllerOptions): void {
  const secrets = new SecretWatch(mgr.cluster)
  const controller = new ProviderReconciler(options, secrets)
  mgr
    .controller('provider', DNSProvider, { timeout: '1m' })
    .triggers((enqueue) => {
      controller.enqueue = enqueue
      const unsubscribe = options.registry.onConflict((provider) => enqueue([provider]))
      const stop = secrets.start(enqueue)
      return () => {
        unsubscribe()
        stop()
      }
    })
    .finalizer(PROVIDER_FINALIZER, (object, ctx) => controller.finalize(object, ctx))
    .gone(async (key) => controller.forget(key))
    .reconcile((object, ctx) => controller.reconcile(object, ctx))
}

class ProviderReconciler {
  enqueue: (keys: readonly string[]) => void = () => undefined
  readonly #options: ProviderControllerOptions
  readonly #secrets: SecretWatch
  readonly #events = new RecentEvents()
  /** Settings of the registered providers, to notice a change. */
  readonly #settings = new Map<string, string>()
  /** Providers that are being deleted, while their records are removed. */
  readonly #leaving = new Map<string, RegisteredProvider>()

  constructor(options: ProviderControllerOptions, secrets: SecretWatch) {
    this.#options = options
    this.#secrets = secrets
  }

  async reconcile(object: Immutable<DNSProvider>, ctx: Context): Promise<Next> {
    const { registry } = this.#options
    const outcome = await this.#update(object, ctx)
    registry.markSeen(ctx.key)
    const conflict = registry.conflictOf(ctx.key)
    await ctx.status(object, providerStatus(object, { ...outcome, conflict }, ctx.clock.now()))
    if (outcome.error !== undefined && this.#events.isNew(ctx.key, outcome.error))
      ctx.event(object, 'Warning', EVENT_REASON, outcome.error)
    if (outcome.error === undefined) this.#events.forget(ctx.key)
    return requeue(outcome.againAfterMs)
  }

  async #update(object: Immutable<DNSProvider>, ctx: Context): Promise<Outcome> {
    const { registry, create, engineOf } = this.#options
    const failed = (error: string, reason: Reason = 'ProviderMisconfigured'): Outcome => ({
      error,
      reason,
      againAfterMs: RETRY_MS,
    })
    const read = readProvider(object, this.#options.limits)
    this.#secrets.follow(ctx.key, 'invalid' in read ? undefined : read.secret)
    if ('invalid' in read) return failed(read.invalid)
    let values: Readonly<Record<string, string>>
    try {
      values = await this.#valuesOf(read.secret, ctx)
    } catch (error) {
      return failed(`cannot get secret ${read.secret ?? ''} for provider ${ctx.key}: ${messageOf(error)}`)
    }
    const settings = JSON.stringify([read.type, values])
    const known = registry.find(ctx.key)
    const isSame = known !== undefined && this.#settings.get(ctx.key) === settings
    let provider: Provider | undefined
    try {
      provider = isSame ? undefined : await create(read.type, nameOf(ctx.key), values)
      if (!isSame && provider === undefined) return failed(unknownType(read.type, ctx.key))
      const engine = provider === undefined ? known?.engine : engineOf(provider)
      if (engine === undefined) return failed(unknownType(read.type, ctx.key))
      const { targets, unread } = await engine.targets(ctx.signal)
      const [unlisted] = unread
      if (unlisted !== undefined) {
        await provider?.close?.()
        return failed(unlisted.why, unlisted.code)
      }
      // Some services list zones without credentials: one read shows whether they are accepted.
      const [first] = targets
      if (provider !== undefined && first !== undefined)
        await engine.view(first, new Set([first.zone.name]), ctx.signal)
      const zones = [...new Set(targets.map(({ zone }) => zone.name))]
      const entry = { name: ctx.key, scope: read.scope, zones, age: ageOf(DNSProvider, object), engine }
      const duplicate = registry.findDuplicate(entry, zones)
      if (duplicate !== undefined) {
        await provider?.close?.()
        await registry.unregister(ctx.key)?.engine.close()
        return failed(`duplicate domain '${duplicate.zone.replace(/\.$/, '')}' with '${duplicate.other}'`)
      }
      // A younger provider with one of the zones has to report that.
      const replaced = registry.register(entry)
      this.enqueue(replaced.map(({ name }) => name))
      this.#settings.set(ctx.key, settings)
      for (const other of replaced) await other.engine.close()
      if (provider !== undefined && known !== undefined) await known.engine.close()
      return { reason: 'Published', againAfterMs: ZONES_MS }
    } catch (error) {
      await provider?.close?.()
      return error instanceof ProviderError ? failed(error.message, error.code) : failed(messageOf(error))
    }
  }

  async #valuesOf(key: string | undefined, ctx: Context): Promise<Readonly<Record<string, string>>> {
    if (key === undefined) return {}
    const secret = await ctx.client.get(Secret, key)
    if (secret.metadata.finalizers?.includes(PROVIDER_FINALIZER) !== true)
      await addFinalizer(ctx.client, Secret, secret, PROVIDER_FINALIZER)
    return Object.fromEntries(
      Object.entries(secret.data ?? {}).map(([name, data]) => [name, Buffer.from(data, 'base64').toString('utf8')]),
    )
  }

  /** Removes the records first: without the provider and its Secret they could not be removed any more. */
  async finalize(object: Immutable<DNSProvider>, ctx: Context): Promise<Next> {
    const { registry, cleanUp } = this.#options
    if (!this.#leaving.has(ctx.key) && registry.find(ctx.key) === undefined) await this.#update(object, ctx)
    const known = this.#leaving.get(ctx.key) ?? registry.find(ctx.key)
    if (known !== undefined) {
      // First, so that no load balancer publishes at it what was just removed.
      registry.unregister(ctx.key)
      this.#leaving.set(ctx.key, known)
      try {
        if (!(await cleanUp(known, ctx.signal))) return requeue(CLEAN_UP_RETRY_MS)
      } catch (error) {
        const message = `cleanup of dns provider failed: ${messageOf(error)}`
        await ctx.status(
          object,
          providerStatus(object, { error: message, reason: 'ProviderUnavailable' }, ctx.clock.now()),
        )
        if (this.#events.isNew(ctx.key, message)) ctx.event(object, 'Warning', EVENT_REASON, message)
        throw error
      }
      this.#leaving.delete(ctx.key)
      await known.engine.close()
    }
    const secretKey = usableSecretOf(object, this.#options.limits)
    const others = ctx.list(DNSProvider).filter((other) => keyOf(other) !== ctx.key && secretKeyOf(other) === secretKey)
    const secret = secretKey === undefined ? undefined : await ctx.client.find(Secret, secretKey)
    if (secret?.metadata.finalizers?.includes(PROVIDER_FINALIZER) === true && others.length === 0)
      await removeFinalizer(ctx.client, Secret, secret, PROVIDER_FINALIZER)
    this.forget(ctx.key)
  }

  forget(key: string): void {
    this.#secrets.follow(key, undefined)
    this.#settings.delete(key)
    this.#events.forget(key)
    this.#options.registry.forget(key)
  }
}

/** A name that provider configurations accept. */
function nameOf(key: string): string {
  return key
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 60)
}
