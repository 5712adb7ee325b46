/** A request among many that is throttled is sent again at its next turn: those before it were not made in vain. */
import { ProviderError } from '../rrset/error.ts'
import type { Turn } from './provider.ts'

/** How often one request is tried. */
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
