/** DNS providers: whether they answer and accept our credentials. Nothing is changed. */
import { type Client, messageOf } from '@seamark/kube'
import { createProvider, type ManagerConfiguration } from '@seamark/operator'
import type { Finding } from './finding.ts'

export async function checkProviders(
  client: Client,
  { records }: ManagerConfiguration,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<Finding[]> {
  const found = await Promise.all(
    records.providers.map(async (config) => {
      try {
        return await checkProvider(await createProvider(config, { env, client }), signal)
      } catch (error) {
        return [{ topic: 'providers', state: 'fault', message: `${config.name}: ${messageOf(error)}` } as const]
      }
    }),
  )
  return found.flat()
}

async function checkProvider(
  provider: Awaited<ReturnType<typeof createProvider>>,
  signal: AbortSignal,
): Promise<Finding[]> {
  try {
    const zones = await provider.zones(signal)
    if (zones.length === 0)
      return [
        {
          topic: 'providers',
          state: 'fault',
          message: `${provider.name} shows no zone; check its zones, and the rights of its credentials`,
        },
      ]
    return await Promise.all(
      zones.map(async (zone): Promise<Finding> => {
        try {
          await provider.read(zone, new Set([zone.name]), signal)
          if (provider.verify === undefined)
            return { topic: 'providers', state: 'ok', message: `${provider.name}: zone ${zone.name} is read` }
          await provider.verify(zone, signal)
          return {
            topic: 'providers',
            state: 'ok',
            message: `${provider.name}: zone ${zone.name} is read, and an update without a change is accepted`,
          }
        } catch (error) {
          return { topic: 'providers', state: 'fault', message: `${provider.name}: ${messageOf(error)}` }
        }
      }),
    )
  } finally {
    await provider.close?.()
  }
}
