/** Interface of the built-in controllers and the dependencies they receive. */
import type { Backend } from '../handlers/call.ts'

export interface ControllerContext {
  readonly backend: Backend
  readonly onError: (error: unknown) => void
}

export interface Controller {
  close(): void
}
