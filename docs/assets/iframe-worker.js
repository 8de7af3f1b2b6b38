// The search runs in a worker, and browsers start none for pages that are read from a folder. There the worker's script runs in
// a hidden frame of the page instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.loaded = new Promise(resolve => {
        const script = frame.contentDocument.createElement("script")
        script.src = new URL(url, document.baseURI)
        script.onload = () => resolve(inside)
        frame.contentDocument.head.append(script)
      })
    }

    postMessage(data) {
      this.loaded.then(inside => inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
