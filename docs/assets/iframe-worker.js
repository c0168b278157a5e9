// Search runs in a Worker, which browsers refuse to start for a page that is opened from the
// disk. There, and only there, a hidden frame does the Worker's work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.frame = frame;
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = this.load(url);
      this.inner.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)));
    }

    load(url) {
      return new Promise((done) => {
        const script = this.inner.document.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = script.onerror = done;
        this.inner.document.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() =>
        this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data })),
      );
    }

    terminate() {
      this.frame.remove();
    }
  };
}
