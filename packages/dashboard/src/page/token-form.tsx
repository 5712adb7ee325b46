/** Asks for a token. It is kept in the memory of this page, and sent to nobody but the manager. */
import type { JSX } from 'preact'
import { tokenWanted, useToken as giveToken } from './data/requests.ts'
import { Command } from './parts/command.tsx'
import { Title } from './views/view-parts.tsx'

export function TokenForm(): JSX.Element {
  return (
    <div class="view token">
      <Title>Token</Title>
      <p>{tokenWanted.value} What its user may read is shown.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const value = new FormData(event.currentTarget).get('token')
          if (typeof value === 'string' && value.trim() !== '') giveToken(value.trim())
        }}
      >
        <label for="token">Bearer token of a user or service account</label>
        <input id="token" name="token" type="password" autocomplete="off" spellcheck={false} required />
        <button type="submit">Read</button>
      </form>
      <p class="quiet">It is kept in the memory of this page until the page is closed. One is made by:</p>
      <Command command="kubectl create token NAME --namespace NAMESPACE --duration 1h" />
    </div>
  )
}
