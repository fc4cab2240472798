// Browsers start no worker for a page that was opened as a file. The site's search asks for one: where the page is a
// file, it gets a hidden frame that runs the worker's script and passes messages in both directions.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      this.inside = this.frame.contentWindow;
      this.inside.postMessage = (data) => this.tell(this, data);
      this.inside.importScripts = (...addresses) => Promise.all(addresses.map((each) => this.load(each)));
      this.load(address).then(() => {
        this.waiting.forEach((data) => this.tell(this.inside, data));
        this.waiting = null;
      });
    }

    load(address) {
      return new Promise((done) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = address;
        script.onload = done;
        this.frame.contentDocument.body.appendChild(script);
      });
    }

    tell(target, data) {
      target.dispatchEvent(new MessageEvent("message", { data }));
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.tell(this.inside, data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
