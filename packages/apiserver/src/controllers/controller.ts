/** What the built-in controllers are made with, and what they are. */
import type { Backend } from '../handlers/call.ts'

export interface ControllerContext {
  readonly backend: Backend
  readonly onError: (error: unknown) => void
}

export interface Controller {
  close(): void
}
