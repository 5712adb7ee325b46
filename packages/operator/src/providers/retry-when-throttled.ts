/** Repeats a throttled request of a call with many requests, so that the preceding requests need not be repeated. */
import { ProviderError } from '../rrset/error.ts'
import type { Turn } from './provider.ts'

/** Attempts for one request. */
const ATTEMPTS = 5

/** `ask` throws ProviderError. */
export async function retryWhenThrottled<T>(ask: () => Promise<T>, turn: Turn | undefined): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      const isThrottled = error instanceof ProviderError && error.code === 'Throttled'
      if (!isThrottled || turn === undefined || attempt === ATTEMPTS) throw error
      await turn(error)
    }
  }
}
